// SPDX-License-Identifier: Apache-2.0

package errno

import "golang.org/x/sys/unix"

type sentinel struct {
	text  string
	errno unix.Errno
}

// New returns an error with its own text that unwraps to an errno.
func New(text string, errno unix.Errno) error { return &sentinel{text, errno} }

func (s *sentinel) Error() string { return s.text }

// Unwrap returns the errno.
func (s *sentinel) Unwrap() error { return s.errno }
