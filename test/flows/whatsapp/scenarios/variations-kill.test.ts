import type { Rule } from '@pombal/simulator'
import { expect, inject, test } from 'vitest'
import { runStanzaKills } from '../../../crashes/stanza-kills.ts'
import { createDatabase } from '../../../databases/database.ts'
import { newSeed } from '../../../rig/random.ts'

const KILLS = 4
const PER_KILL_MS = 120_000

/** The network knows no LIDs, lists no devices, and acknowledges late and by the ID alone. */
const PERMANENT_RULES: readonly Rule[] = [
  { when: { stanza: 'iq', direction: 'out' }, do: { without: ['lid', 'device-list'] } },
  { when: { stanza: 'success' }, do: { without: ['lid'] } },
  { when: { stanza: 'message', direction: 'out' }, do: { address: 'pn', alternate: false } },
  { when: { stanza: 'ack', direction: 'out' }, do: { without: ['class', 't', 'from'] } },
  { when: { stanza: 'ack', direction: 'out' }, do: { delayMs: 0, jitterMs: 100 } },
]

test(
  'kill -9 on a network that behaves differently: each text is shown once, byte for byte, and reported once, and both directions work immediately',
  async () => {
    const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
    console.log(`kills on a network that behaves differently: CRASH_SEED=${seed}`)
    const database = await createDatabase('sqlite', inject('postgresUrl'))
    const said: string[] = []
    const say = (line: string) => said.push(line)
    const violations = await runStanzaKills({ database, kills: KILLS, seed, permanentRules: PERMANENT_RULES, say })
    expect(violations, said.join('\n')).toEqual([])
  },
  KILLS * PER_KILL_MS,
)
