// Package hostile tests what a provider.Provider answers to a client that keeps to no rule: handles that it was not
// given (handle.go), parameters in their whole range (command.go, idcommand.go), and queues in shared memory that it
// writes at random (scribble.go). Tests is run by verbstest.Run.
package hostile
