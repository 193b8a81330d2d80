import { Button } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import type { Query } from '../../api/client.ts'
import { listPage } from '../../api/queries.ts'
import { useWords } from '../../i18n/i18n.tsx'
import { type Cell, csvFile } from '../../text/csv.ts'
import { problemText } from '../feedback/problem.tsx'
import { useToast } from '../feedback/toasts.tsx'
import { DownloadIcon } from '../icons.tsx'

const PAGE_SIZE = 200

interface ExportCsvProps<T> {
  /** The name of the file, without its extension. */
  name: string
  path: string
  query: Query
  /** The API's field names, which are the same in every language, so that a program can read them. */
  columns: readonly string[]
  cellsOf: (row: T) => readonly Cell[]
}

/** Saves everything that the filters of a list select, page by page. */
export function ExportCsv<T>({ name, path, query, columns, cellsOf }: ExportCsvProps<T>) {
  const words = useWords()
  const toast = useToast()
  const [rows, setRows] = useState(0)
  const ended = useRef<AbortController>(undefined)
  const run = useMutation({
    mutationFn: async () => {
      ended.current = new AbortController()
      const exported = await csvFile(pages<T>(path, query, ended.current.signal), columns, cellsOf, setRows)
      save(exported.isCut ? `${name}-first-${exported.rows}.csv` : `${name}.csv`, exported.file)
      return exported
    },
    onSuccess: ({ rows: count, isCut }) => {
      if (isCut) toast(words.tools.exportedPart(count), 'bad')
      else toast(words.tools.exported(count))
    },
    onError: error => {
      if (!ended.current?.signal.aborted) toast(problemText(error, words), 'bad')
    },
    onSettled: () => setRows(0),
  })
  return (
    <Button
      variant="default"
      leftSection={<DownloadIcon />}
      onClick={() => (run.isPending ? ended.current?.abort() : run.mutate())}
    >
      {run.isPending ? `${words.tools.exporting(rows)} ${words.common.cancel}` : words.tools.export}
    </Button>
  )
}

async function* pages<T>(path: string, query: Query, signal: AbortSignal): AsyncGenerator<readonly T[]> {
  for (let cursor: string | undefined; ; ) {
    const page = await listPage<T>(path, { ...query, limit: PAGE_SIZE, cursor }, signal)
    yield page.data
    if (page.nextCursor === null) return
    cursor = page.nextCursor
  }
}

function save(name: string, file: Blob): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(file)
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}
