#!/usr/bin/env node
// Plain JavaScript that any Node can read, so that one that is too old gets a sentence and not a syntax error.
import { join } from 'node:path'

const [major, minor] = process.versions.node.split('.').map(Number)
if (major !== 24 || minor < 12) {
  console.error(
    `Pombal needs Node 24.12 or a later 24; this is ${process.versions.node}. "npm start" brings the right one along.`,
  )
  process.exit(1)
}
// Name look-ups for webhooks wait in libuv's threads: four that hang would hold up every other one, and the disk too.
process.env.UV_THREADPOOL_SIZE ??= '32'
// What is compiled once is read again at the next start, which takes a third off it; where nothing can be written, it is
// compiled again. (Node 20 has no such export: it must not be named in an `import` statement.)
const { enableCompileCache, flushCompileCache } = await import('node:module')
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/pombal'))
await import('../src/main.ts')
// Not only at the end: a process that is killed has no end.
flushCompileCache()
