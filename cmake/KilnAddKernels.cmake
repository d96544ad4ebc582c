# SPDX-License-Identifier: Apache-2.0
# kiln_add_kernels(<target> SOURCES <file.cu>... [ARCHS <arch>...] [BUNDLE] [NAMES <expression>...] [EXPORTS <variable>...]
#                  [NAME <name>] [OPTIONS <NVRTC option>...] [INCLUDES <directory>...]
#                  [SIGN <key.pem>] [IMAGES_ONLY] [COMPRESS])
#
# Puts CUDA C++ sources into a target as Kiln units, with the headers that they read, and, with BUNDLE, also their artifacts for
# ARCHS, compiled now: the program then needs neither compiler nor cache nor headers where it runs. In the target's sources:
#
#     #include "<name>.hpp"                            // NAME, default <target>_kernels
#     auto unit = kiln::engine::process().get_sync(<name>::saxpy());      // saxpy.cu
#
# docs/guide/cmake.md has all of it. Static libraries: link the target as a whole (or use an OBJECT library), because the bundle is
# registered by a static object.

# What no function or namespace can be called: keywords, what compilers and the C library have macros of, and what the generated source
# calls its own.
function(_kiln_names_taken out)
    set(${out} alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
        concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do
        double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace new
        noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return short
        signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid
        typename union unsigned using virtual void volatile wchar_t while xor xor_eq text registered kiln std
        linux unix errno assert stdin stdout stderr major minor makedev offsetof setjmp NULL EOF NAN INFINITY PARENT_SCOPE)
endfunction()

# The function each file becomes, in out: its stem; with its folder's name before it where two stems are equal; with an underscore after
# it where it is taken.
function(_kiln_functions_of out)
    _kiln_names_taken(taken)
    set(stems "")
    foreach(file IN LISTS ARGN)
        cmake_path(GET file STEM LAST_ONLY stem)
        list(APPEND stems "${stem}")
    endforeach()
    set(functions "")
    foreach(file stem IN ZIP_LISTS ARGN stems)
        set(others ${stems})
        list(REMOVE_ITEM others "${stem}")
        list(LENGTH stems all)
        list(LENGTH others different)
        math(EXPR times "${all} - ${different}")
        if(times GREATER 1)
            cmake_path(GET file PARENT_PATH folder)
            cmake_path(GET folder FILENAME folder)
            set(stem ${folder}_${stem})
        endif()
        string(MAKE_C_IDENTIFIER "${stem}" function)
        if(function IN_LIST taken)
            string(APPEND function _)
        endif()
        if(function IN_LIST functions)
            message(FATAL_ERROR "kiln_add_kernels: two files would be ${function}(): ${ARGN}")
        endif()
        list(APPEND functions ${function})
    endforeach()
    set(${out} ${functions} PARENT_SCOPE)
endfunction()

# What was written as "file.cu:what" gets the file's whole path, in the list `list`. Not by a pattern: files have names like c++.cu.
function(_kiln_with_paths list file path)
    string(LENGTH "${file}:" length)
    set(out "")
    foreach(what IN LISTS ${list})
        string(FIND "${what}" "${file}:" at)
        string(FIND "${what}" "${file}::" qualified)
        if(at EQUAL 0 AND NOT qualified EQUAL 0)
            string(SUBSTRING "${what}" ${length} -1 what)
            string(PREPEND what "${path}:")
        endif()
        list(APPEND out "${what}")
    endforeach()
    set(${list} "${out}" PARENT_SCOPE)
endfunction()

# A generator expression may come to nothing, or to several: each of them gets `word` before it, in the list `list`. Nothing is what has no
# letter: what $<BOOL> takes for false may well be meant.
function(_kiln_append_expression list word expression)
    set(rest "${expression}")
    while(rest MATCHES "\\$<[^<>]*>")
        string(REGEX REPLACE "\\$<[^<>]*>" "" rest "${rest}")
    endwhile()
    if(rest MATCHES ",")
        message(FATAL_ERROR "kiln_add_kernels: ${expression}: beside a generator expression a comma is written $<COMMA>")
    endif()
    string(REPLACE ";" "\\;" expression "${expression}")
    list(APPEND ${list} "$<$<NOT:$<STREQUAL:$<MAKE_C_IDENTIFIER:${expression}>,>>:${word}$<JOIN:${expression},\\;${word}>>")
    set(${list} "${${list}}" PARENT_SCOPE)
endfunction()

# An error for what cannot be, before anything is made of it.
function(_kiln_check_call target)  # and what follows it in the call
    # Rules belong to the directory of the target that they are for.
    if(NOT TARGET ${target})
        message(FATAL_ERROR "kiln_add_kernels(${target}): there is no such target yet; make it first")
    endif()
    get_target_property(made_in ${target} SOURCE_DIR)
    if(NOT made_in STREQUAL CMAKE_CURRENT_SOURCE_DIR)
        message(FATAL_ERROR "kiln_add_kernels(${target}): the target is made in ${made_in}; call it there, or make an OBJECT library here "
                            "and link that")
    endif()
    # What is generated is C++, and CMake drops sources of a language nobody enabled without a word.
    get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
    if(NOT CXX IN_LIST languages)
        message(FATAL_ERROR "kiln_add_kernels(${target}): it makes a C++ source, and this project has no C++; write "
                            "project(${PROJECT_NAME} LANGUAGES CXX ${languages})")
    endif()
    string(MAKE_C_IDENTIFIER "${arg_NAME}" possible)
    _kiln_names_taken(taken)
    if(NOT possible STREQUAL arg_NAME OR arg_NAME IN_LIST taken)
        message(FATAL_ERROR "kiln_add_kernels(${target}): NAME is that of a namespace and of a header, and '${arg_NAME}' can be none; "
                            "'${possible}_kernels' can")
    endif()
    if(arg_BUNDLE AND NOT arg_ARCHS)
        message(FATAL_ERROR "kiln_add_kernels(${target}): a BUNDLE needs ARCHS, for example ARCHS 80 90")
    endif()
    foreach(word IN ITEMS SIGN IMAGES_ONLY COMPRESS)
        if(word IN_LIST ARGN AND NOT arg_BUNDLE)
            message(FATAL_ERROR "kiln_add_kernels(${target}): ${word} is about the BUNDLE, and there is none")
        endif()
    endforeach()
endfunction()

function(kiln_add_kernels target)
    set(single NAME SIGN)
    set(multiple SOURCES ARCHS NAMES EXPORTS OPTIONS INCLUDES)
    cmake_parse_arguments(PARSE_ARGV 1 arg "BUNDLE;IMAGES_ONLY;COMPRESS" "${single}" "${multiple}")
    # A word whose variable is empty would mean what was not asked for: a bundle nobody signed, a header not found.
    foreach(word IN LISTS single multiple)
        if(word IN_LIST ARGN AND ("${arg_${word}}" STREQUAL "" OR "" IN_LIST arg_${word}))
            message(FATAL_ERROR "kiln_add_kernels(${target}): ${word} has no value, or an empty one among others; is the variable behind it "
                                "empty? Give it one, or leave it out")
        endif()
    endforeach()
    if(NOT "${arg_UNPARSED_ARGUMENTS}" STREQUAL "" OR NOT arg_SOURCES)
        message(FATAL_ERROR "kiln_add_kernels(${target}): SOURCES are needed; unknown: ${arg_UNPARSED_ARGUMENTS}")
    endif()
    if(NOT arg_ARCHS AND CMAKE_CUDA_ARCHITECTURES)
        set(arg_ARCHS ${CMAKE_CUDA_ARCHITECTURES})
    endif()
    if(NOT DEFINED arg_NAME)
        string(MAKE_C_IDENTIFIER "${target}_kernels" arg_NAME)
    endif()
    _kiln_check_call(${target} ${ARGN})
    get_property(others TARGET ${target} PROPERTY KILN_KERNEL_NAMES)
    if(arg_NAME IN_LIST others)
        message(FATAL_ERROR "kiln_add_kernels(${target}): it has a ${arg_NAME}.hpp already; choose another NAME")
    endif()
    set_property(TARGET ${target} APPEND PROPERTY KILN_KERNEL_NAMES ${arg_NAME})
    # Each target has its own, and so has each configuration of a build that has several.
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}.kernels)
    get_property(has_several GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
    set(folders ${folder})
    if(has_several)
        list(TRANSFORM CMAKE_CONFIGURATION_TYPES PREPEND ${folder}/ OUTPUT_VARIABLE folders)
        string(APPEND folder /$<CONFIG>)
    endif()

    set(sources "")
    foreach(file IN LISTS arg_SOURCES)
        cmake_path(ABSOLUTE_PATH file NORMALIZE OUTPUT_VARIABLE path)
        list(APPEND sources ${path})
        _kiln_with_paths(arg_NAMES "${file}" "${path}")
        _kiln_with_paths(arg_EXPORTS "${file}" "${path}")
    endforeach()
    _kiln_functions_of(functions ${sources})
    list(JOIN functions "," function_list)

    set(flags "")
    foreach(directory IN LISTS arg_INCLUDES)
        if(directory MATCHES "\\$<")
            _kiln_append_expression(flags "--include=" "${directory}")
        else()
            cmake_path(ABSOLUTE_PATH directory NORMALIZE)
            list(APPEND flags -I ${directory})
        endif()
    endforeach()
    foreach(option IN LISTS arg_OPTIONS)
        string(REPLACE "\\;" ";" option "${option}")
        if(option MATCHES "\\$<")
            _kiln_append_expression(flags "--option=" "${option}")
        else()
            # One that has a semicolon in it, with or without a backslash, is still one: here, and when the command is expanded.
            string(REPLACE ";" "\\\\;" option "${option}")
            list(APPEND flags "--option=${option}")
        endif()
    endforeach()
    foreach(name IN LISTS arg_NAMES)
        list(APPEND flags -n ${name})
    endforeach()
    foreach(variable IN LISTS arg_EXPORTS)
        list(APPEND flags --export ${variable})
    endforeach()
    if(arg_ARCHS)
        list(JOIN arg_ARCHS "," archs)
        list(APPEND flags --arch ${archs})
    endif()
    set(made ${folder}/${arg_NAME}.cpp.texts)
    set(depends ${sources})
    if(arg_BUNDLE)
        list(APPEND made ${folder}/${arg_NAME}.kiln)
        list(APPEND flags -o ${folder}/${arg_NAME}.kiln --title ${arg_NAME})
        if(arg_IMAGES_ONLY)
            list(APPEND flags --images-only)
        endif()
        if(arg_COMPRESS)
            list(APPEND flags --compress)
        endif()
        if(NOT "${arg_SIGN}" STREQUAL "")  # also what a search did not find is a name, of a file that is not there
            cmake_path(ABSOLUTE_PATH arg_SIGN NORMALIZE)
            list(APPEND flags --sign ${arg_SIGN})
            list(APPEND depends ${arg_SIGN})
        endif()
    endif()

    # Headers are known once they were read: an edited one makes all of it anew, as it does an object file.
    set(source ${folder}/${arg_NAME}.cpp)
    set(header ${folder}/${arg_NAME}.hpp)
    set(product ${source})
    set(working_directory ${CMAKE_CURRENT_BINARY_DIR})
    if(CMAKE_CROSS_CONFIGS)
        # CMake 3.25 crashes where it is to translate dependencies of several configurations for Ninja: these need no translation.
        cmake_policy(SET CMP0116 OLD)
        cmake_path(RELATIVE_PATH product BASE_DIRECTORY ${CMAKE_BINARY_DIR})
        set(working_directory ${CMAKE_BINARY_DIR})
    endif()
    set(outputs ${source} ${header})
    set(afterwards "")
    if(NOT CMAKE_GENERATOR MATCHES "Ninja")
        # Make goes by times alone: what came out the same would be made again each time. The header keeps its time, so that only the
        # generated source is compiled once more.
        set(outputs ${source})
        list(APPEND made ${header})
        set(afterwards COMMAND ${CMAKE_COMMAND} -E touch ${source})
    endif()
    add_custom_command(OUTPUT ${outputs} BYPRODUCTS ${made}
        COMMAND kiln::cli build ${sources} ${flags} --embed ${product} --embed-name ${arg_NAME} --as ${function_list}
                --depfile ${source}.d
        ${afterwards}
        DEPENDS ${depends} kiln::cli DEPFILE ${source}.d COMMENT "Compiling ${arg_NAME}"
        WORKING_DIRECTORY ${working_directory} VERBATIM COMMAND_EXPAND_LISTS)
    foreach(place IN LISTS folders)
        file(MAKE_DIRECTORY ${place})
        # The assembler takes in what the compiler does not know of.
        set_source_files_properties(${place}/${arg_NAME}.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endforeach()
    target_sources(${target} PRIVATE ${source} ${header})
    target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${folder}>")
endfunction()
