//go:build race

package labtest

// testsAProcessor is how many parallel tests run at once for each processor. Under the race detector they compute more
// than they wait.
const testsAProcessor = 2
