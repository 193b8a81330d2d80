import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { STORES } from '../databases/database.ts'
import { until } from '../until.ts'
import { type Fault, underLoad } from './fault.ts'
import { pickOwner } from './pick-owner.ts'

/** Enough for a node under load, and little enough to exhaust soon. */
const HEAP = '--max-old-space-size=256'
const PRELOAD = `--import=${join(import.meta.dirname, '../crashes/thread-fault.ts')}`
const NODES = { sqlite: 1, postgres: 3 } as const
const DIES_WITHIN_MS = 60_000
/** A new thread, a login, and the texts that were accepted meanwhile. */
const RECOVERS_WITHIN_MS = 30_000

/** The ways that a thread of connections can die. A loop is noticed after 20 missed heartbeats. */
const WAYS = [
  { how: 'error', name: 'a WhatsApp thread ends with an error' },
  { how: 'memory', name: 'a WhatsApp thread exhausts its memory' },
  { how: 'loop', name: 'a WhatsApp thread is in an endless loop' },
] as const

/** The process survives, and no caller may notice. */
export const THREAD_FAULTS: readonly Fault[] = WAYS.flatMap(({ how, name }) =>
  STORES.map(store =>
    underLoad({
      name,
      store,
      recoversWithinMs: RECOVERS_WITHIN_MS,
      refuses: 'nothing',
      arrange: (_, cleanUp) => {
        const folder = mkdtempSync(join(tmpdir(), 'pombal-thread-fault-'))
        cleanUp.defer(async () => rmSync(folder, { recursive: true }))
        const files = Array.from({ length: NODES[store] }, (_, index) => join(folder, `fault-${index}`))
        return {
          nodes: files.map(file => ({
            env: { THREAD_FAULT: file, WHATSAPP_THREADS: '1' },
            nodeOptions: [PRELOAD, HEAP],
          })),
          strike: async ({ harness, random }) => {
            const node = await pickOwner(harness, random)
            const deaths = () => node.wholeLog.split('"msg":"whatsapp.thread_died"').length - 1
            const before = deaths()
            writeFileSync(join(folder, 'next'), how)
            renameSync(join(folder, 'next'), files[harness.nodes.indexOf(node)]!)
            await until('the death of the thread', () => deaths() > before, DIES_WITHIN_MS)
            harness.noteIncident()
          },
        }
      },
    }),
  ),
)
