import { expect, inject, test } from 'vitest'
import { newInstance } from './fixture.ts'
import { createPostgresHarness } from './harness.ts'

test('a PostgreSQL without ICU finds names, with the case of its own collation', async () => {
  await using cleanUp = new AsyncDisposableStack()
  const harness = await createPostgresHarness(inject('postgresUrl'))
  cleanUp.defer(() => harness.dispose())
  await harness.execute('drop collation pg_catalog."und-x-icu"')
  const store = await harness.open()
  const { id } = await store.instances.create(newInstance({ name: 'São Paulo, чай' }), 0)
  for (const search of ['SAO', 'são', 'чай']) {
    expect((await store.instances.list({ limit: 10 }, { search })).data).toMatchObject([{ id }])
  }
})
