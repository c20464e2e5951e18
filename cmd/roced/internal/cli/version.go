// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"runtime"

	"github.com/roced/roced/internal/release"
	"github.com/spf13/cobra"
)

// Version returns the release tag, or "(devel)".
func Version() string { return release.Version() }

// VersionLine returns the output of --version.
func VersionLine() string {
	return fmt.Sprintf("roced %s (%s, %s/%s)", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// addVersion adds the flag --version to a command and its subcommands.
func addVersion(cmd *cobra.Command) {
	cmd.Version = Version()
	cmd.Flags().Bool("version", false, "print the version")
	cmd.SetVersionTemplate(VersionLine() + "\n")
	for _, c := range cmd.Commands() {
		addVersion(c)
	}
}
