// SPDX-License-Identifier: Apache-2.0

// Package hostile tests the responses of a provider.Provider to a misbehaving client: handles that it was not
// given (handle.go), parameters in their whole range (command.go, idcommand.go), and queues in shared memory that it
// writes at random (scribble.go). Tests is run by verbstest.Run.
package hostile
