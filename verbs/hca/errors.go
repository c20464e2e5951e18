//go:build linux

package hca

import (
	"errors"
	"fmt"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/verbs"
)

// hostError wraps an error of the host or the steering in one of package verbs, as all errors of a
// session are.
func hostError(err error) error {
	switch {
	case err == nil, verbs.KindOf(err) != nil:
		return err
	case errors.Is(err, bpf.ErrTableFull):
		return fmt.Errorf("%w: %w", verbs.ErrLimit, err)
	}
	return fmt.Errorf("%w: %w", verbs.ErrHost, err)
}
