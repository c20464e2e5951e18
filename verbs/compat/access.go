package compat

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/inside"
)

// in reaches what verbs' objects do not export.
var in = inside.Get[inside.Access[*verbs.Context, *verbs.PD, *verbs.MR, *verbs.QP, *verbs.CQ]]()

// errNil is for a nil object or nil attributes, often after an error that was not checked.
var errNil = fmt.Errorf("%w: the object or its attributes are nil", verbs.ErrInvalid)
