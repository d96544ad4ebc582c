// SPDX-License-Identifier: Apache-2.0
//
// libcurl, opened at run time: whoever has no remote over HTTP loads none of its thirty libraries, and Kiln builds without it. Names
// and numbers are those of its stable binary interface.
#pragma once

#include "remote/byte_server.hpp"

namespace kiln::remote {

// Resolved once; see libcurl's own documentation for what each does.
struct curl_api {
    using handle = void*;
    struct list {
        char* data;
        list* next;
    };
    struct certificates {
        int count;
        list** each;
    };
    struct message {
        int what;
        handle easy;
        union {
            void* whatever;
            int result;
        } data;
    };
    struct wait_fd {
        int fd;
        short events, revents;
    };
    handle (*easy_init)();
    int (*easy_setopt)(handle, int, ...);
    int (*easy_getinfo)(handle, int, ...);
    void (*easy_cleanup)(handle);
    int (*easy_perform)(handle);
    int (*easy_send)(handle, void const*, std::size_t, std::size_t*);
    int (*easy_recv)(handle, void*, std::size_t, std::size_t*);
    char const* (*easy_strerror)(int);
    list* (*slist_append)(list*, char const*);
    void (*slist_free_all)(list*);
    handle (*multi_init)();
    int (*multi_setopt)(handle, int, ...);
    int (*multi_add_handle)(handle, handle);
    int (*multi_remove_handle)(handle, handle);
    int (*multi_perform)(handle, int*);
    int (*multi_poll)(handle, wait_fd*, unsigned, int, int*);
    message* (*multi_info_read)(handle, int*);
    int (*multi_cleanup)(handle);
};
// Loads it. The first call takes milliseconds.
[[nodiscard]] result<curl_api const*> load_curl();

// What its codes are to us.
[[nodiscard]] trouble trouble_of(int code) noexcept;
// Of the server that was connected to, in PEM form, where certificates were asked for.
[[nodiscard]] std::string certificate_of(curl_api const& a, curl_api::handle easy);
// A child of a fork has no part in its parent's connections: they are closed there at once.
void close_in_children(curl_api const& a, curl_api::handle easy);

}  // namespace kiln::remote
