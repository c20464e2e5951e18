// Package deadline turns the deadlines of a net.Conn into contexts.
//
//	d := deadline.New()
//	d.Set(at)         SetReadDeadline: also for calls that wait now
//	d.Context()       what a call waits by: done at the time, with os.ErrDeadlineExceeded
package deadline
