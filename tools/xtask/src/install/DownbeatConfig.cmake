# find_package(Downbeat) defines the targets
#
#   Downbeat::downbeat, Downbeat::downbeat_static          for programs without MPI
#   Downbeat::mpi, Downbeat::mpi_static (component mpi)     for MPI programs
#
# The component mpi uses the MPI library that find_package(MPI) finds, or that Downbeat_MPI names.
include(CMakeFindDependencyMacro)

get_filename_component(_downbeat_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
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
      INTERFACE_LINK_LIBRARIES "${_downbeat_needs}")
  endif()
endmacro()

_downbeat_target(downbeat lib downbeat)

if("mpi" IN_LIST Downbeat_FIND_COMPONENTS)
  find_dependency(MPI COMPONENTS C)
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
    _downbeat_target(mpi "lib/${Downbeat_MPI}" downbeat_mpi)
    foreach(_downbeat_name mpi mpi_static)
      set_property(TARGET Downbeat::${_downbeat_name} APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS DOWNBEAT_MPI)
      set_property(TARGET Downbeat::${_downbeat_name} APPEND PROPERTY INTERFACE_LINK_LIBRARIES MPI::MPI_C)
    endforeach()
  elseif(Downbeat_FIND_REQUIRED_mpi)
    set(Downbeat_FOUND FALSE)
    set(Downbeat_NOT_FOUND_MESSAGE
      "libdownbeat is installed for the MPI libraries \"@LIBRARIES@\", not for this one; name one in Downbeat_MPI")
  endif()
endif()
