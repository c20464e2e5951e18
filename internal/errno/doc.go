// Package errno makes sentinel errors that unwrap to an errno.
//
//	err := errno.New("limit reached", unix.ENOMEM)
//	    │ errors.Is(err, err)          the error of this module
//	    └ errors.Is(err, unix.ENOMEM)  the errno of libibverbs and the kernel
//
// Each package declares its errors with New, or with Kin if they are several others, and wraps them with %w to
// say what failed.
//
// Left out: the text of the errno. It would only repeat the error's.
package errno
