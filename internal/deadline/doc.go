// Package deadline is the deadlines of a net.Conn as contexts.
//
//	d := deadline.New()
//	d.Set(at)         SetReadDeadline: also for calls that wait now
//	d.Context()       what a call waits by: done at the time, with os.ErrDeadlineExceeded
package deadline
