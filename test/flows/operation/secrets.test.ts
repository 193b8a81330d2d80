import { randomBytes } from 'node:crypto'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../databases/database.ts'
import { queryPostgres } from '../../databases/query-postgres.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

const PASSWORD = 'confidential-password-of-the-database'

/** Starts the service and waits until it exits. */
async function startInVain(env: Record<string, string>): Promise<string> {
  const service = new Service({ env })
  onTestFinished(() => service.dispose())
  service.boot()
  expect((await service.exited()).code).toBe(1)
  return service.output
}

describe('the output of a failed start contains no secret', () => {
  const keys = { ADMIN_KEY: randomBytes(32).toString('hex'), MASTER_KEY: randomBytes(32).toString('base64') }

  test('of a database that cannot be reached', async () => {
    const output = await startInVain({ ...keys, DATABASE_URL: `postgres://pombal:${PASSWORD}@127.0.0.1:1/pombal` })
    for (const secret of [PASSWORD, keys.ADMIN_KEY, keys.MASTER_KEY]) expect(output).not.toContain(secret)
  })

  test('of one that refuses the password', async () => {
    const url = new URL(inject('postgresUrl'))
    url.password = PASSWORD
    url.username = 'nobody_of_this_name'
    const output = await startInVain({ ...keys, DATABASE_URL: url.href })
    for (const secret of [PASSWORD, keys.ADMIN_KEY, keys.MASTER_KEY]) expect(output).not.toContain(secret)
  })

  test('of invalid settings', async () => {
    const wrong = {
      ADMIN_KEY: 'confidential-but-short',
      MASTER_KEY: 'confidential-and-no-key',
      DATABASE_URL: `mysql://x:${PASSWORD}@y`,
    }
    const output = await startInVain(wrong)
    for (const name of Object.keys(wrong)) expect(output).toContain(name)
    expect(output).not.toContain('confidential')
  })
})

test('a row that PostgreSQL shows with an error is not in the log', async () => {
  const database = await createDatabase('postgres', inject('postgresUrl'))
  const service = await new Service({ env: { ...database.env, SANDBOX: 'on' } }).start()
  onTestFinished(async () => {
    await service.dispose()
    await database.dispose()
  })
  const { id, token } = await service.admin.createConnected()
  await queryPostgres(database.url ?? '', "alter table messages add check (recipient <> '5511987654321')")
  const sent = service.instance(id, token).send('5511987654321', 'confidential-text')
  await expect(sent).rejects.toMatchObject({ code: 'internal_error' })
  await until('the failure to be logged', () =>
    service.logLines.some(({ msg, err }) => msg === 'request.failed' && JSON.stringify(err).includes('23514')),
  )
  expect(service.wholeOutput).not.toContain('confidential-text')
})
