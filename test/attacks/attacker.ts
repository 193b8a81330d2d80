import { readOptions } from '../../scripts/command-line.ts'
import { ATTACKS, type AttackName, startAttack } from './attacks.ts'

/** Runs one attack until the process is killed: `node test/attacks/attacker.ts pipelined-pages --port 3000`. */

const USAGE = `usage: node test/attacks/attacker.ts NAME [--port 3000] [--metrics-port N]
KEYS: what the attacks with a key need, as JSON (\`AttackKeys\`)
NAME: ${Object.keys(ATTACKS).join(', ')}`

const options = { port: { type: 'string', default: '3000' }, 'metrics-port': { type: 'string', default: '0' } } as const
const { values, positionals } = readOptions(USAGE, options, true)
const [name = ''] = positionals
const { KEYS } = process.env
if (!Object.hasOwn(ATTACKS, name)) {
  console.error(USAGE)
  process.exit(2)
}
await startAttack(name as AttackName, {
  port: Number(values.port),
  metricsPort: Number(values['metrics-port']),
  ...(KEYS !== undefined && { keys: JSON.parse(KEYS) }),
})
console.log('started')
