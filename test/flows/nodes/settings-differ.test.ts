import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, expect, inject, test } from 'vitest'
import { createDatabase } from '../../databases/database.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

test('a node whose settings differ logs one warning for each other node, and each other node logs one about it', async () => {
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

test('nodes that name the same path, but do not see the same folder of files, say so', async () => {
  const database = await createDatabase('postgres', inject('postgresUrl'))
  cleanUps.push(() => database.dispose())
  const [shared, unmounted] = [
    mkdtempSync(join(tmpdir(), 'pombal-shared-')),
    mkdtempSync(join(tmpdir(), 'pombal-own-')),
  ]
  const link = join(unmounted, 'media')
  symlinkSync(shared, link)
  cleanUps.push(() => {
    for (const folder of [shared, unmounted]) rmSync(folder, { recursive: true, force: true })
  })
  const start = async () => {
    const node = new Service({ env: { ...database.env, MEDIA_URL: pathToFileURL(link).href } })
    cleanUps.push(() => node.dispose())
    await node.start()
    return node
  }
  const [first, second] = [await start(), await start()]
  rmSync(link)
  mkdirSync(link)
  const other = await start()
  const warnings = (node: Service) => node.logLines.filter(({ msg }) => msg === 'settings.differ')
  await until('the warnings', () => warnings(first).length + warnings(second).length + warnings(other).length === 4)
  const place = (folder: string) =>
    JSON.stringify({ kind: 'folder', path: link, id: readFileSync(join(folder, 'folder.id'), 'utf8') })
  const there = { differing: { MEDIA_URL: [place(shared), place(link)] } }
  expect([warnings(first), warnings(second)]).toMatchObject([[there], [there]])
  expect(readdirSync(shared)).toEqual(['folder.id'])
})
