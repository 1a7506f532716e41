set(PACKAGE_VERSION "@VERSION@")
# Before version 1, the second number changes when programs must change.
string(REGEX MATCH "^[0-9]+\\.[0-9]+" _downbeat_series "${PACKAGE_VERSION}")
string(REGEX MATCH "^[0-9]+\\.[0-9]+" _downbeat_wanted "${PACKAGE_FIND_VERSION}")
if(NOT PACKAGE_FIND_VERSION OR (_downbeat_series STREQUAL _downbeat_wanted
                                AND NOT PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION))
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
