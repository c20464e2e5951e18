// SPDX-License-Identifier: Apache-2.0

package deviceplugin

import (
	"testing"

	"github.com/roced/roced/deploy/kubernetes/internal/rig"
)

// programs is where roced and the plugin are.
var programs string

func TestMain(m *testing.M) { rig.Main(m, &programs, "roced-device-plugin") }
