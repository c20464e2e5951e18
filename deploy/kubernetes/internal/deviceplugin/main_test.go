// SPDX-License-Identifier: Apache-2.0

package deviceplugin

import (
	"testing"

	"github.com/roced/roced/deploy/kubernetes/internal/rig"
)

// programs is the folder of roced and the plugin.
var programs string

func TestMain(m *testing.M) { rig.Main(m, &programs, "roced-device-plugin") }
