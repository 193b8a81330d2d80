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

test('a node that does not see the folder of files of the others says so, and stores nothing', async () => {
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
  const reports = (node: Service) => node.logLines.filter(({ msg }) => msg === 'media.storage_unusable')
  await until('the report', () => reports(other).length > 0)
  const id = readFileSync(join(shared, 'folder.id'), 'utf8')
  expect(reports(other)).toMatchObject([
    { path: link, id, err: { message: expect.stringContaining('Is it mounted?') } },
  ])
  expect([reports(first), reports(second)]).toEqual([[], []])
  expect([readdirSync(shared), readdirSync(link)]).toEqual([['folder.id'], []])
})
