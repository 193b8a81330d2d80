import { expect, test } from 'vitest'
import { AT_ONCE, Places } from './places.ts'

const fetchOf = (instanceId: string, host: string) => ({ instanceId, host, mediaId: 'm', url: 'u', attempts: 0 })

test('a host has half of the places of its instance', () => {
  const places = new Places()
  const slow = [places.begin(fetchOf('a', 'slow')), places.begin(fetchOf('a', 'slow'))]
  expect(places.full()).toEqual({ instances: [], hosts: [expect.objectContaining({ instanceId: 'a', host: 'slow' })] })
  places.begin(fetchOf('a', 'x'))
  places.begin(fetchOf('a', 'y'))
  expect(places.full().instances).toEqual(['a'])
  slow[0]![Symbol.dispose]()
  expect(places.full()).toEqual({ instances: [], hosts: [] })
})

test('the second half of the places of the node is for instances that fetch nothing', () => {
  const places = new Places()
  for (let n = 0; n < AT_ONCE.node / 2; n += 1) places.begin(fetchOf(`i${Math.floor(n / 2)}`, `h${n}`))
  expect(places.full().instances).toHaveLength(AT_ONCE.node / 4)
  expect(places.isFull).toBe(false)
  for (let n = 0; n < AT_ONCE.node / 2; n += 1) places.begin(fetchOf(`j${n}`, 'h'))
  expect(places.isFull).toBe(true)
})
