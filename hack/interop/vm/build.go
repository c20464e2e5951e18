// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Build builds a command of this module, such as "cmd/roced", as a static binary.
func Build(ctx context.Context, path, command string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/roced/roced/"+command)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", command, err, out)
	}
	return nil
}
