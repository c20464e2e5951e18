//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/verbs"
)

// hostError wraps an error of the host in one of package verbs, as all errors of a
// session are.
func hostError(err error) error {
	switch {
	case err == nil, verbs.KindOf(err) != nil:
		return err
	}
	return fmt.Errorf("%w: %w", verbs.ErrHost, err)
}
