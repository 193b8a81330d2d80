/** Accepts messages until it is killed, and prints the ID of each accepted message. */
import { writeSync } from 'node:fs'
import { openStore } from '../../../src/store/open-store.ts'
import { newMessage } from '../fixture.ts'
import { MASTER_KEY } from '../harness.ts'

const TOGETHER = 16
const STDOUT = 1

const [dataDir, instanceId] = process.argv.slice(2)
const store = await openStore({ dataDir: dataDir!, masterKey: MASTER_KEY, ratePerMinute: 100 })
const [lease] = await store.leases.acquire('writer', 1)
await store.connections.record(lease!, { state: 'connected', reason: 'Connected.' }, Date.now())
for (;;) {
  const messages = Array.from({ length: TOGETHER }, () => newMessage(instanceId!))
  await Promise.all(
    messages.map(async message => {
      const { kind } = await store.messages.accept(message, Date.now())
      if (kind === 'accepted') writeSync(STDOUT, `${message.id}\n`)
    }),
  )
}
