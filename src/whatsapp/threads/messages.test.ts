import { expect, test } from 'vitest'
import { BatchedPort } from './messages.ts'

interface Message {
  call: number
  value: unknown
}

test('a message that cannot be cloned is returned, and the others of its turn are sent in order', async () => {
  const sent: Message[][] = []
  const returned: number[] = []
  const port = new BatchedPort<Message>(
    { postMessage: messages => void sent.push(structuredClone(messages)) },
    ({ call }, error) => {
      expect(error).toMatchObject({ name: 'DataCloneError' })
      returned.push(call)
    },
  )
  port.post({ call: 1, value: 'a' })
  port.post({ call: 2, value: () => undefined })
  port.post({ call: 3, value: new Uint8Array(1) })
  await new Promise(setImmediate)
  port.post({ call: 4, value: 'b' })
  await new Promise(setImmediate)
  expect(returned).toEqual([2])
  expect(sent.flat().map(({ call }) => call)).toEqual([1, 3, 4])
})
