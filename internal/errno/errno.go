package errno

import "golang.org/x/sys/unix"

type sentinel struct {
	text  string
	errno unix.Errno
}

// New makes an error with a text of its own, for which errors.Is finds the errno as well.
func New(text string, errno unix.Errno) error { return &sentinel{text, errno} }

func (s *sentinel) Error() string { return s.text }

// Unwrap gives the errno.
func (s *sentinel) Unwrap() error { return s.errno }
