// SPDX-License-Identifier: Apache-2.0
// Numbers of libcurl's stable binary interface, by what they are used for here.
#pragma once

#include <cstddef>

namespace kiln::remote::curl {

namespace option {
inline constexpr int write_data = 10001, url = 10002, user_password = 10005, read_data = 10009, error_buffer = 10010,
                     write_function = 20011, read_function = 20012, http_header = 10023, certificate = 10025,
                     header_data = 10029, ssl_version = 32, custom_request = 10036, no_body = 44, upload = 46,
                     netrc = 51, follow = 52, verify_peer = 64, ca_file = 10065, most_redirects = 68,
                     header_function = 20079, verify_host = 81, http_version = 84, certificate_key = 10087,
                     no_signal = 99, in_file_size = 30115, permission_ms = 227, timeout_ms = 155,
                     connect_timeout_ms = 156, protocols = 181, redirect_protocols = 182, http09_allowed = 285,
                     connect_only = 141, alpn = 226, aws_sigv4 = 10305, ready_function = 20312, low_speed_limit = 19,
                     low_speed_seconds = 20, no_proxy = 10177, open_socket = 20163, close_socket = 20208,
                     ready_data = 10313, quick_exit = 322, certificates = 172;
}  // namespace option
namespace info {
inline constexpr int response_code = 0x200002, active_socket = 0x500000 + 44, certificates = 0x400000 + 34;
}  // namespace info
namespace multi_option {
inline constexpr int most_connections_per_host = 7;
}
inline constexpr long only_http = 3;  // http and https
inline constexpr long only_https = 2;
inline constexpr long tls_1_2 = 6;
inline constexpr long http_1_1 = 2;
inline constexpr long http_2_over_tls = 4;
inline constexpr int message_done = 1;
inline constexpr int try_later = 81;
inline constexpr std::size_t error_bytes = 256;

}  // namespace kiln::remote::curl
