package hca

import (
	"errors"
	"fmt"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/verbs"
)

// hostError makes what the host or the steering said an error of package verbs, as all are that a
// session gives; what was said stays wrapped in it.
func hostError(err error) error {
	switch {
	case err == nil, verbs.KindOf(err) != nil:
		return err
	case errors.Is(err, bpf.ErrTableFull):
		return fmt.Errorf("%w: %w", verbs.ErrLimit, err)
	}
	return fmt.Errorf("%w: %w", verbs.ErrHost, err)
}
