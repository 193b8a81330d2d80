import { parseArgs } from 'node:util'
import { type KillReport, runKills } from './kill-run.ts'
import { newSeed } from './random.ts'

/** Violations printed of each store; the rest is counted. */
const SHOWN = 20

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '100' },
    seed: { type: 'string', default: String(newSeed()) },
    store: { type: 'string' },
    instances: { type: 'string', default: '2' },
  },
})
