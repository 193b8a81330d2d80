import { defineConfig } from 'vitest/config'
import { TEST_WITHIN_MS } from './test/deadlines.ts'

export default defineConfig({
  test: {
    include: ['{src,simulator,test,panel}/**/*.test.ts'],
    globalSetup: ['test/log-setup.ts', 'test/postgres-setup.ts', 'test/browser/build-setup.ts'],
    // Flows start whole services and real networks on loopback; on two busy cores that takes its time.
    testTimeout: TEST_WITHIN_MS,
    // Most of the time is waiting, for real retries and restarts; vitest would use one worker on two cores.
    maxWorkers: 2,
    hookTimeout: TEST_WITHIN_MS,
  },
})
