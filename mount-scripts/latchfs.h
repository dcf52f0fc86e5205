/*
 * latchfs.h - name the share mode of an open descriptor on a latchfs mount.
 *
 *     #include <fcntl.h>
 *     #include <stdio.h>
 *     #include "latchfs.h"
 *
 *     int fd = open("/mnt/share/report.txt", O_RDWR);
 *     if (latchfs_set_share(fd, LATCHFS_NONE) == -1)
 *         perror("in use");                    // EBUSY: another open is in the way
 *     struct latchfs_handle h;
 *     if (latchfs_get_handle(fd, &h) == 0)     // the number `latchfs handles` shows
 *         printf("handle %llu\n", (unsigned long long)h.handle);
 *     latchfs_set_share(fd, LATCHFS_DELETE);
 *     latchfs_set_delete(fd, 1);               // the name goes with its last open; every open,
 *                                              // this one too, must share deletion
 *
 * Every function returns 0, or -1 with errno: EBUSY if another open is in the way, ENOTTY for a
 * descriptor that is not on a latchfs mount, EINVAL for bits that do not exist.
 *
 * The numbers and the layout are a promise. Linux only; the fields are little-endian.
 */
#ifndef LATCHFS_H
#define LATCHFS_H

#include <stdint.h>
#include <sys/ioctl.h>

/* What an open may do, and what it tolerates from others. */
#define LATCHFS_NONE 0u
#define LATCHFS_READ 1u
#define LATCHFS_WRITE 2u
#define LATCHFS_DELETE 4u

/* What an open is in latchfs's table. */
struct latchfs_handle {
    uint64_t handle;         /* the number that `latchfs handles` shows */
    uint32_t access;         /* LATCHFS_READ, _WRITE, _DELETE */
    uint32_t share;          /* the same: what it tolerates */
    uint32_t delete_pending; /* 1 if the name is marked for deletion */
    uint32_t reserved;
};

#define LATCHFS_SET_SHARE _IOW('L', 1, uint32_t)
#define LATCHFS_SET_DELETE _IOW('L', 2, uint32_t)
#define LATCHFS_GET_HANDLE _IOR('L', 3, struct latchfs_handle)

/* Changes what the open tolerates, at once or not at all. */
static inline int latchfs_set_share(int fd, uint32_t share)
{
    return ioctl(fd, LATCHFS_SET_SHARE, &share);
}

/* Marks the file for deletion when its last open closes (1), or takes the mark away (0). */
static inline int latchfs_set_delete(int fd, uint32_t mark)
{
    return ioctl(fd, LATCHFS_SET_DELETE, &mark);
}

/* What the open is in latchfs's table. */
static inline int latchfs_get_handle(int fd, struct latchfs_handle *handle)
{
    return ioctl(fd, LATCHFS_GET_HANDLE, handle);
}

#endif
