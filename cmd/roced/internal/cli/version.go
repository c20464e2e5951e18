package cli

import (
	"fmt"
	"runtime"

	"github.com/roced/roced/internal/release"
	"github.com/spf13/cobra"
)

// Version is the release's tag, or "(devel)".
func Version() string { return release.Version() }

// VersionLine is what --version prints.
func VersionLine() string {
	return fmt.Sprintf("roced %s (%s, %s/%s)", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// addVersion gives a command and those below it the flag --version.
func addVersion(cmd *cobra.Command) {
	cmd.Version = Version()
	cmd.Flags().Bool("version", false, "show the version instead")
	cmd.SetVersionTemplate(VersionLine() + "\n")
	for _, c := range cmd.Commands() {
		addVersion(c)
	}
}
