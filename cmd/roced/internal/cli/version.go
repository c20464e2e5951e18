package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is what the go command wrote into the binary: a tag, or "(devel)".
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

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
