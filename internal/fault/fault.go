// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"runtime/debug"
)

// Fault is a contained panic.
type Fault struct {
	Cause any // value of recover
	Stack []byte
}

// Error returns the cause without the stack.
func (f *Fault) Error() string {
	return fmt.Sprintf("internal error, please report it with the log: %v", f.Cause)
}

// Contain calls a function and returns its panic; nil if it returned. A fault on missing memory (SIGSEGV or
// SIGBUS on a mapping shared with a program) is a panic, too.
func Contain(do func()) (f *Fault) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			f = &Fault{cause, debug.Stack()}
		}
	}()
	do()
	return nil
}

// Call is Contain for a function that returns an error: the panic is returned as the error.
func Call(do func() error) (err error) {
	if f := Contain(func() { err = do() }); f != nil {
		return f
	}
	return err
}
