#!/usr/bin/env node
// Plain JavaScript that every version of Node can parse, so that an old version prints a clear message and not a syntax error.
import { join } from 'node:path'

const [major, minor] = process.versions.node.split('.').map(Number)
if (major !== 24 || minor < 12) {
  console.error(
    `Pombal needs Node 24.12 or a later 24; this is ${process.versions.node}. "npm start" uses the right version.`,
  )
  process.exit(1)
}
// By default V8's young generation grows to 128 MB and keeps unused buffers alive outside the heap until then, and glibc
// keeps freed memory separately for each thread. Together they add 130 MB to a busy node. Consolidating glibc's "fast bins"
// for each large allocation takes a tenth of the main thread's time. These options take effect only when a process starts,
// so it is replaced by a new one with the same ID, pipes and options.
const YOUNG_GENERATION = '--max-semi-space-size'
const isLimited = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].some(text => text.includes(YOUNG_GENERATION))
if (!isLimited && !process.connected && process.platform !== 'win32') {
  const args = [process.execPath, `${YOUNG_GENERATION}=16`, ...process.execArgv, ...process.argv.slice(1)]
  process.execve(process.execPath, args, {
    MALLOC_ARENA_MAX: '2',
    GLIBC_TUNABLES: 'glibc.malloc.mxfast=0',
    ...process.env,
  })
}
// DNS look-ups for webhooks block libuv's threads. With the default of four threads, four hanging look-ups would stop all
// others, and file access too.
process.env.UV_THREADPOOL_SIZE ??= '32'
// Caches compiled code, which makes a start a third faster. Without a writable folder, every start compiles again.
// (Imported dynamically because Node 20 does not have this export.)
const { enableCompileCache } = await import('node:module')
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/pombal'))
await import('../src/main.ts')
