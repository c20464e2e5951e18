// SPDX-License-Identifier: Apache-2.0

package show

import (
	"log/slog"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/spf13/cobra"
)

func TestMain(m *testing.M) {
	cmdtest.Main(m, func(*slog.Logger) []*cobra.Command { return []*cobra.Command{New()} })
}
