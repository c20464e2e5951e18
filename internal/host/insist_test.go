// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// TestInsist: the temporary error is retried a limited number of times, another error is returned immediately.
func TestInsist(t *testing.T) {
	for _, row := range []struct {
		name  string
		errs  []error // of successive calls; the last one repeats
		want  error
		tries int
	}{
		{"at once", []error{nil}, nil, 1},
		{"the third time", []error{unix.EBUSY, unix.EBUSY, nil}, nil, 3},
		{"never", []error{unix.EBUSY}, unix.EBUSY, 5},
		{"another error", []error{unix.EPERM}, unix.EPERM, 1},
		{"another error, then", []error{unix.EBUSY, unix.EPERM}, unix.EPERM, 2},
	} {
		tries := 0
		err := Insist(unix.EBUSY, func() error {
			tries++
			return row.errs[min(tries, len(row.errs))-1]
		})
		if !errors.Is(err, row.want) || tries != row.tries {
			t.Errorf("%s: %v after %d", row.name, err, tries)
		}
	}
}
