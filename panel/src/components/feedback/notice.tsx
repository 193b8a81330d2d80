import { Alert } from '@mantine/core'
import type { ReactNode } from 'react'
import { WarningIcon } from '../icons.tsx'
import classes from './notice.module.css'

interface NoticeProps {
  /** `bad`: something does not work; `wait`: something needs attention. */
  tone: 'bad' | 'wait'
  title?: ReactNode
  children: ReactNode
}

/** A problem and its remedy. */
export function Notice({ tone, title, children }: NoticeProps) {
  return (
    <Alert
      role="alert"
      data-tone={tone}
      classNames={{ root: classes.notice, title: classes.title, icon: classes.icon, message: classes.message }}
      icon={<WarningIcon />}
      title={title}
    >
      {children}
    </Alert>
  )
}
