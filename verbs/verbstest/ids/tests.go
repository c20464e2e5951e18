// SPDX-License-Identifier: Apache-2.0

package ids

import (
	"slices"

	"github.com/roced/roced/verbs/verbstest/rig"
)

// Tests contains the tests of this package.
var Tests = slices.Concat([]rig.Test(nil), lifeTests, joinTests, connectTests, laterTests, optionTests, connectionTests, connectedTests)
