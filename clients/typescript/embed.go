// Package typescript is the client in TypeScript as it was built, for `settle generate ts` to write beside what it generates. Its sources are in src,
// and npm run build writes dist.
package typescript

import "embed"

// Dist is the directory dist.
//
//go:embed dist/*.js dist/*.d.ts
var Dist embed.FS
