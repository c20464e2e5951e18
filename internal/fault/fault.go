package fault

import (
	"fmt"
	"runtime/debug"
)

// Fault is a panic.
type Fault struct {
	Cause any // what recover gave
	Stack []byte
}

// Error is what went wrong, without the stack.
func (f *Fault) Error() string {
	return fmt.Sprintf("a mistake of roced's own, please report it with the log: %v", f.Cause)
}

// Contain calls a function, and gives the panic that it ended in; nil if it returned. Memory that is not there
// (SIGSEGV, SIGBUS: a mapping that is shared with a program) is a panic too.
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

// Call is Contain for a function that can fail: the panic is the error.
func Call(do func() error) (err error) {
	if f := Contain(func() { err = do() }); f != nil {
		return f
	}
	return err
}
