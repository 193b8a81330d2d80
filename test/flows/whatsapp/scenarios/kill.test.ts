import { expect, inject, test } from 'vitest'
import { runStanzaKills } from '../../../crashes/stanza-kills.ts'
import { createDatabase } from '../../../databases/database.ts'
import { newSeed } from '../../../rig/random.ts'

/** `npm run test:crash` does 200, on both databases. */
const KILLS = 20
const PER_KILL_MS = 120_000

test(
  'kill -9 between any two stanzas: each text is shown once, byte for byte, and reported once, and both directions work immediately',
  async () => {
    const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
    console.log(`kills between stanzas: CRASH_SEED=${seed}`)
    const database = await createDatabase('sqlite', inject('postgresUrl'))
    const said: string[] = []
    const violations = await runStanzaKills({ database, kills: KILLS, seed, say: line => said.push(line) })
    expect(violations, said.join('\n')).toEqual([])
  },
  KILLS * PER_KILL_MS,
)
