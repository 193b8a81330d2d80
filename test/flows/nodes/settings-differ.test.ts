import { randomBytes } from 'node:crypto'
import { afterEach, expect, inject, test } from 'vitest'
import { createDatabase } from '../../databases/database.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

test('a node with other settings than the others says so once, and they say so too', async () => {
  const database = await createDatabase('postgres', inject('postgresUrl'))
  cleanUps.push(() => database.dispose())
  const changes = [{}, {}, { RETENTION_DAYS: '7', ADMIN_KEY: randomBytes(32).toString('hex') }]
  const nodes = changes.map(change => new Service({ env: { ...database.env, ...change } }))
  for (const node of nodes) cleanUps.push(() => node.dispose())
  for (const node of nodes) await node.start()
  const [first, second, other] = nodes as [Service, Service, Service]
  const warnings = (node: Service) => node.logLines.filter(({ msg }) => msg === 'settings.differ')
  const there = { differing: { RETENTION_DAYS: ['30', '7'], ADMIN_KEY: [null, null] } }
  const here = { differing: { RETENTION_DAYS: ['7', '30'], ADMIN_KEY: [null, null] } }
  await until(
    'all warnings',
    () => warnings(first).length > 0 && warnings(second).length > 0 && warnings(other).length > 1,
  )
  expect([warnings(first), warnings(second)]).toMatchObject([[there], [there]])
  expect(warnings(other)).toMatchObject([here, here])
})
