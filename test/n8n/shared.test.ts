import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EVENT_KINDS } from '../../src/domain/events/event.ts'

/** What can be tested without n8n. `npm run test:n8n` runs the nodes. */

const ROOT = join(import.meta.dirname, '../..')
const PACKAGE = join(ROOT, 'integrations/n8n-nodes-pombal')

interface Vector {
  secret: string
  at: string
  body: string
  headers: Record<string, string>
}

test('the triggers offer every kind of event', async () => {
  const shared: { EVENT_KINDS: readonly string[] } = await import(join(PACKAGE, 'nodes/shared/event-kinds.ts'))
  expect([...shared.EVENT_KINDS]).toEqual([...EVENT_KINDS].sort())
})

test('the webhook trigger accepts what Pombal signs, and nothing else', async () => {
  const { isSigned }: { isSigned(secret: string, headers: object, body: Uint8Array, now: number): boolean } =
    await import(join(PACKAGE, 'nodes/shared/signature.ts'))
  const { vectors } = JSON.parse(readFileSync(join(ROOT, 'docs/signature-vectors.json'), 'utf8')) as {
    vectors: Vector[]
  }
  expect(vectors.length).toBeGreaterThan(3)
  for (const { secret, at, body, headers } of vectors) {
    const [bytes, now] = [Buffer.from(body), Date.parse(at)]
    expect(isSigned(secret, headers, bytes, now)).toBe(true)
    expect(isSigned(secret, headers, Buffer.from(`${body} `), now)).toBe(false)
    expect(isSigned(secret, { ...headers, 'webhook-id': 'evt_other' }, bytes, now)).toBe(false)
    expect(isSigned(`whsec_${Buffer.alloc(32).toString('base64')}`, headers, bytes, now)).toBe(false)
    expect(isSigned(secret, headers, bytes, now + 301_000)).toBe(false)
    for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature'])
      expect(isSigned(secret, { ...headers, [name]: undefined }, bytes, now)).toBe(false)
  }
})

test('the package names files that a build makes of its sources', () => {
  const { n8n, dependencies } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8'))
  const built: string[] = [...n8n.credentials, ...n8n.nodes]
  expect(built).toHaveLength(4)
  for (const path of built) {
    const source = path.replace(/^dist\//, '').replace(/\.js$/, '.ts')
    expect(existsSync(join(PACKAGE, source)), source).toBe(true)
  }
  // n8n refuses verified packages with dependencies of their own.
  expect(dependencies).toBeUndefined()
})

test('every workflow name gives its endpoint a valid description', async () => {
  const { describeEndpoint }: { describeEndpoint(workflowName?: string): string } = await import(
    join(PACKAGE, 'nodes/shared/endpoint-description.ts')
  )
  const cut = describeEndpoint(`${'a'.repeat(94)}😀😀`)
  expect(cut).toBe(`n8n: ${'a'.repeat(94)}😀`)
  expect(describeEndpoint('Orders\tand\r\nreturns')).toBe('n8n: Orders and  returns')
  expect(describeEndpoint()).toBe('n8n:')
})
