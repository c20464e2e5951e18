// Package errno makes errors that stand for an errno.
//
//	errno.New("limit reached", unix.ENOMEM)
//	    │ errors.Is(err, itself)       what this module calls it
//	    └ errors.Is(err, unix.ENOMEM)  what libibverbs and the kernel call it
//
// Each package declares its own with New; what was being done is wrapped around them with %w.
//
// Left out: texts of the errno itself, which would only repeat the error's.
package errno
