#!/usr/bin/env node
// Plain JavaScript that any Node can read, so that one that is too old gets a sentence and not a syntax error.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major !== 24 || minor < 12) {
  console.error(
    `Pombal needs Node 24.12 or a later 24; this is ${process.versions.node}. "npm start" brings the right one along.`,
  )
  process.exit(1)
}
// Name look-ups for webhooks wait in libuv's threads: four that hang would hold up every other one, and the disk too.
process.env.UV_THREADPOOL_SIZE ??= '32'
await import('../src/main.ts')
