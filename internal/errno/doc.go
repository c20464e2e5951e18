// SPDX-License-Identifier: Apache-2.0

// Package errno creates sentinel errors that unwrap to an errno.
//
//	err := errno.New("limit reached", unix.ENOMEM)
//	    │ errors.Is(err, err)          an error of this module
//	    └ errors.Is(err, unix.ENOMEM)  the errno of libibverbs and the kernel
//
// Each package declares its errors with New, or with Kin if they match several others, and wraps them with %w
// to add what failed.
//
// The text of the errno is omitted, because it would repeat that of the error.
package errno
