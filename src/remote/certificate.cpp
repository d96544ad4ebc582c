// SPDX-License-Identifier: Apache-2.0
#include "remote/certificate.hpp"

#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

namespace kiln::remote {

std::optional<int> days_left(std::string_view pem) {
    std::unique_ptr<BIO, decltype(&BIO_free_all)> const from{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                             &BIO_free_all};
    if (from == nullptr) return std::nullopt;
    std::unique_ptr<X509, decltype(&X509_free)> const it{PEM_read_bio_X509(from.get(), nullptr, nullptr, nullptr),
                                                         &X509_free};
    int days = 0, seconds = 0;
    if (it == nullptr || ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(it.get())) != 1)
        return std::nullopt;
    return seconds < 0 ? days - 1 : days;
}

}  // namespace kiln::remote
