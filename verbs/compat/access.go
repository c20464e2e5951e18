// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/inside"
)

// in gives access to unexported state of verbs' objects.
var in = inside.Get[inside.Access[*verbs.Context, *verbs.PD, *verbs.MR, *verbs.QP, *verbs.CQ]]()

// errNil is the error for a nil object or nil attributes, often after an unchecked error.
var errNil = fmt.Errorf("%w: the object or its attributes are nil", verbs.ErrInvalid)
