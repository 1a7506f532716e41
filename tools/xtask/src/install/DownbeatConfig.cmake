# find_package(Downbeat) defines the targets
#
#   Downbeat::downbeat, Downbeat::downbeat_static          for programs without MPI
#   Downbeat::mpi, Downbeat::mpi_static (component mpi)     for MPI programs
#   Downbeat::fortran, Downbeat::mpi_fortran                the same for Fortran (component fortran)
#
# The component mpi uses the MPI library that find_package(MPI) finds, or that Downbeat_MPI names.
include(CMakeFindDependencyMacro)

set(_downbeat_lib "@LIBDIR@")
string(REGEX REPLACE "[^/]+" ".." _downbeat_up "${_downbeat_lib}")
get_filename_component(_downbeat_prefix "${CMAKE_CURRENT_LIST_DIR}/../../${_downbeat_up}" ABSOLUTE)
set(Downbeat_MPI_LIBRARIES "@LIBRARIES@")
separate_arguments(Downbeat_MPI_LIBRARIES)
set(_downbeat_needs "@NEEDS@")
separate_arguments(_downbeat_needs)

macro(_downbeat_target name folder library)
  if(NOT TARGET Downbeat::${name})
    add_library(Downbeat::${name} SHARED IMPORTED)
    set_target_properties(Downbeat::${name} PROPERTIES
      IMPORTED_LOCATION "${_downbeat_prefix}/${folder}/lib${library}.so"
      INTERFACE_INCLUDE_DIRECTORIES "${_downbeat_prefix}/include")
    add_library(Downbeat::${name}_static STATIC IMPORTED)
    set_target_properties(Downbeat::${name}_static PROPERTIES
      IMPORTED_LOCATION "${_downbeat_prefix}/${folder}/lib${library}.a"
      INTERFACE_INCLUDE_DIRECTORIES "${_downbeat_prefix}/include"
      INTERFACE_LINK_OPTIONS "LINKER:@EXPORTED@"
      INTERFACE_LINK_LIBRARIES "${_downbeat_needs}")
  endif()
endmacro()

# The modules of Fortran, with the library that they call.
macro(_downbeat_fortran name folder modules library calls)
  if(EXISTS "${_downbeat_prefix}/${folder}/lib${library}.a")
    set(Downbeat_fortran_FOUND TRUE)
    if(NOT TARGET Downbeat::${name})
      add_library(Downbeat::${name} STATIC IMPORTED)
      set_target_properties(Downbeat::${name} PROPERTIES
        IMPORTED_LOCATION "${_downbeat_prefix}/${folder}/lib${library}.a"
        INTERFACE_INCLUDE_DIRECTORIES "${_downbeat_prefix}/${modules}"
        INTERFACE_LINK_LIBRARIES "Downbeat::${calls}")
    endif()
  elseif(Downbeat_FIND_REQUIRED_fortran)
    set(Downbeat_FOUND FALSE)
    set(Downbeat_NOT_FOUND_MESSAGE "libdownbeat is installed without its modules of Fortran")
  endif()
endmacro()

_downbeat_target(downbeat ${_downbeat_lib} downbeat)
if("fortran" IN_LIST Downbeat_FIND_COMPONENTS)
  _downbeat_fortran(fortran ${_downbeat_lib} include downbeat_fortran downbeat)
endif()

if("mpi" IN_LIST Downbeat_FIND_COMPONENTS)
  set(_downbeat_languages C)
  if("fortran" IN_LIST Downbeat_FIND_COMPONENTS)
    list(APPEND _downbeat_languages Fortran)
  endif()
  find_dependency(MPI COMPONENTS ${_downbeat_languages})
  if(NOT Downbeat_MPI)
    # Programs and libraries of one MPI library have its name in their paths.
    foreach(_downbeat_library IN LISTS Downbeat_MPI_LIBRARIES)
      if("${MPI_C_COMPILER};${MPI_C_LIBRARIES};${MPI_C_INCLUDE_DIRS}" MATCHES "${_downbeat_library}")
        set(Downbeat_MPI "${_downbeat_library}")
      endif()
    endforeach()
  endif()
  if(Downbeat_MPI IN_LIST Downbeat_MPI_LIBRARIES)
    set(Downbeat_mpi_FOUND TRUE)
    _downbeat_target(mpi "${_downbeat_lib}/${Downbeat_MPI}" downbeat_mpi)
    foreach(_downbeat_name mpi mpi_static)
      set_property(TARGET Downbeat::${_downbeat_name} APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS DOWNBEAT_MPI)
      set_property(TARGET Downbeat::${_downbeat_name} APPEND PROPERTY INTERFACE_LINK_LIBRARIES MPI::MPI_C)
    endforeach()
    if("fortran" IN_LIST Downbeat_FIND_COMPONENTS)
      _downbeat_fortran(mpi_fortran "${_downbeat_lib}/${Downbeat_MPI}" "include/${Downbeat_MPI}" downbeat_mpi_fortran mpi)
      set_property(TARGET Downbeat::mpi_fortran APPEND PROPERTY INTERFACE_LINK_LIBRARIES MPI::MPI_Fortran)
    endif()
  elseif(Downbeat_FIND_REQUIRED_mpi)
    set(Downbeat_FOUND FALSE)
    set(Downbeat_NOT_FOUND_MESSAGE
      "libdownbeat is installed for the MPI libraries \"@LIBRARIES@\", not for this one; name one in Downbeat_MPI")
  endif()
endif()
