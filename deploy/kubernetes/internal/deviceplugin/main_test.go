package deviceplugin

import (
	"fmt"
	"os"
	"testing"

	"github.com/roced/roced/deploy/kubernetes/internal/rig"
)

// programs is where roced and the plugin are.
var programs string

func TestMain(m *testing.M) {
	code := 1
	folder, err := os.MkdirTemp("", "roced-device-plugin-")
	if err == nil {
		err = rig.Build(folder, "roced-device-plugin")
	}
	if err == nil {
		programs = folder
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	_ = os.RemoveAll(folder)
	os.Exit(code)
}
